"""Tables and words to figures: the only folder that knows Altair and the Vega renderer."""
