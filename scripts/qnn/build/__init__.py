"""Makes bundles: keys of all stages, the builder that asks for them backwards, installing what came out."""
