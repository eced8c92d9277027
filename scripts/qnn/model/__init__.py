"""model.yaml: reading with positions, schema, rules, dataclasses."""
