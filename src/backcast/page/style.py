"""How pages look: light and dark by the reader's own choice, and on paper."""

from __future__ import annotations

CSS = """\
:root {
  --ink: #1c2024; --quiet: #60656c; --paper: #ffffff; --card: #f6f7f9; --line: #dfe2e6;
  --good: #1a7f46; --bad: #c0322b; --careful: #9a5b00; --info: #2f6bb3; --plain: #868d95;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ink: #e6e8ea; --quiet: #9aa1a9; --paper: #14171a; --card: #1c2024; --line: #31363c;
    --good: #4cc27f; --bad: #ff7a70; --careful: #e3a948; --info: #6ba6ee; --plain: #747b83;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0;
  background: var(--paper);
  color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", sans-serif;
}
main { max-width: 68rem; margin: 0 auto; padding: 2rem 1.25rem 3rem; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 1.05rem; margin: 0 0 .4rem; }
section { margin-top: 2rem; }
p { margin: .4rem 0; }
.subtitle, .note, footer, dt, th, .tile .name, .ends, .legend { color: var(--quiet); }
.subtitle, .note, .legend, .ends, footer { font-size: .875rem; }
footer { margin-top: 3rem; border-top: 1px solid var(--line); padding-top: .75rem; }
code {
  font: .875em/1.4 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace;
  background: var(--card);
  padding: .1em .35em;
  border-radius: 4px;
  overflow-wrap: anywhere;
}
.facts { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1.25rem; margin: .75rem 0; }
.facts dd { margin: 0; overflow-wrap: anywhere; }
.tiles { display: flex; flex-wrap: wrap; gap: .75rem; margin: 1.25rem 0 0; }
.tile {
  background: var(--card);
  border: 1px solid var(--line);
  border-radius: 8px;
  padding: .65rem 1rem;
  min-width: 8.5rem;
}
.tile .number { font-size: 1.4rem; font-weight: 600; font-variant-numeric: tabular-nums; line-height: 1.25; }
.tile .name { font-size: .8125rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums; margin: .5rem 0; }
caption { text-align: left; color: var(--quiet); padding-bottom: .25rem; }
th { font-weight: 500; text-align: left; border-bottom: 1px solid var(--line); white-space: nowrap; }
th, td { padding: .28rem .9rem .28rem 0; vertical-align: top; }
td { border-bottom: 1px solid color-mix(in srgb, var(--line) 55%, transparent); }
.n { text-align: right; white-space: nowrap; }
.badge {
  display: inline-block;
  font-size: .8125rem;
  line-height: 1.35;
  padding: 0 .5em;
  border-radius: 999px;
  border: 1px solid currentColor;
  white-space: nowrap;
}
.tone-good { color: var(--good); } .tone-bad { color: var(--bad); } .tone-careful { color: var(--careful); }
.tone-quiet { color: var(--quiet); } .tone-info { color: var(--info); }
.chart { display: block; max-width: 100%; height: auto; margin: .5rem 0; overflow: visible; }
.chart[preserveAspectRatio] { height: 18px; }
.chart text { fill: var(--ink); font-size: 12px; }
td .chart { margin: 0; }
.axis { stroke: var(--line); } .line { fill: none; stroke: var(--info); stroke-width: 1.5; }
.fill-plain, .fill-quiet { fill: var(--plain); background: var(--plain); }
.fill-good { fill: var(--good); background: var(--good); }
.fill-bad { fill: var(--bad); background: var(--bad); }
.fill-careful { fill: var(--careful); background: var(--careful); }
.fill-info { fill: var(--info); background: var(--info); }
.key { display: inline-block; width: .7em; height: .7em; border-radius: 2px; margin-right: .35em; }
.legend .key:not(:first-child) { margin-left: 1.1em; }
.ends { display: flex; justify-content: space-between; gap: 1rem; margin: 0; }
del { color: var(--bad); text-decoration-thickness: 1px; } ins { color: var(--good); text-decoration: none; }
summary { cursor: pointer; }
@media print {
  :root { --ink: #000; --quiet: #444; --paper: #fff; --card: #fff; --line: #bbb; }
  main { max-width: none; padding: 0; } section, tr, .tile, svg { break-inside: avoid; } h2 { break-after: avoid; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  details::details-content { content-visibility: visible; height: auto; }
  .wide { overflow: visible; }
}
"""
