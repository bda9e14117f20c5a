"""Models: similarities, losses, the recurrent layer, encoders, and the JointSpace made of them."""
