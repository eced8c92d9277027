"""Where a release comes from, written down and checked: checksums, SBOM, provenance statement, attestation."""
