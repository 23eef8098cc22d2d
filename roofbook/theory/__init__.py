"""What the hardware allows: pure arithmetic over models and machines, standard library only."""
