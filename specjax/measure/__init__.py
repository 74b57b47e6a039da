"""What things cost on this device, and one job measured whole."""
