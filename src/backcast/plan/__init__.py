"""Step 1, request to manifest: pin the inputs, bound the scope, cut chunks, estimate. No side effects."""
