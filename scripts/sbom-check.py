#!/usr/bin/env python3
"""Checks a bill of materials against CycloneDX's own schema: scripts/sbom-check.py FILE (with the component `cyclonedx`)."""

import json
import sys
from pathlib import Path

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

text = Path(sys.argv[1]).read_text()
if wrong := JsonStrictValidator(SchemaVersion.V1_5).validate_str(text):
    sys.exit(f"{sys.argv[1]}: {wrong}")
bill = json.loads(text)
named = {component["bom-ref"] for component in bill["components"]} | {bill["metadata"]["component"]["bom-ref"]}
for entry in bill["dependencies"]:
    if absent := {entry["ref"], *entry["dependsOn"]} - named:
        sys.exit(f"{sys.argv[1]}: {sorted(absent)} is needed and not described")
