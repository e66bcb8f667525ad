"""Expected observations from formulas that are not the reference: staff only."""
