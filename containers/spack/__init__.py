"""Images and MPIs by Spack: its environment, locks, mirror and images."""
