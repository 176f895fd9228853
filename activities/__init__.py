"""Everything that touches the outside world: one module per system, behind `interfaces`."""
