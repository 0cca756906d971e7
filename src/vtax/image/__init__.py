"""ONE root file system for every environment: built once from a recipe, cached under the recipe's hash."""
