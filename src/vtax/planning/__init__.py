"""From a study file to a frozen plan: mistakes, shape of the nodes, order, commands, presets."""
