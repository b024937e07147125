"""Step 3, stage to verdict: checks, counts and digests of exactly one staged version."""
