#!/usr/bin/python3
"""The API description is valid OpenAPI 3.0: its keys, schemas and references."""
import re

import jsonschema
from api_schemas import METHODS, Api, as_json_schema
from framed_client import Checks

TEXT = {"type": "string", "minLength": 1}
SCHEMA = {"type": "object", "properties": {"type": {"enum": ["object", "array", "string", "integer", "number", "boolean"]},
                                           "nullable": {"enum": [True]}, "description": TEXT},
          "anyOf": [{"required": ["type"]}, {"required": ["$ref"], "maxProperties": 1}]}
CONTENT = {"type": "object", "minProperties": 1, "additionalProperties": {
    "type": "object", "required": ["schema"], "properties": {"schema": SCHEMA}, "additionalProperties": False}}
RESPONSE = {"type": "object", "required": ["description", "content"], "additionalProperties": False,
            "properties": {"description": TEXT, "content": CONTENT}}
REFERENCE = {"type": "object", "required": ["$ref"], "maxProperties": 1}
PARAMETER = {"type": "object", "required": ["name", "in", "description", "schema"], "additionalProperties": False,
             "properties": {"name": TEXT, "in": {"enum": ["path", "query", "header"]}, "description": TEXT,
                            "required": {"type": "boolean"}, "schema": SCHEMA}}
OPERATION = {"type": "object", "required": ["operationId", "summary", "responses"], "additionalProperties": False,
             "properties": {"operationId": {"type": "string", "pattern": r"^\w+$"}, "summary": TEXT, "description": TEXT,
                            "parameters": {"type": "array", "items": PARAMETER}, "security": {"enum": [[]]},
                            "x-needs-http-write": {"type": "boolean"},
                            "requestBody": {"type": "object", "required": ["content", "required"], "additionalProperties": False,
                                            "properties": {"required": {"type": "boolean"}, "content": CONTENT}},
                            "responses": {"type": "object", "required": ["200"], "additionalProperties": False,
                                          "patternProperties": {r"^[2-5]\d\d$": {"oneOf": [RESPONSE, REFERENCE]}}}}}
DOCUMENT = {
    "type": "object", "required": ["openapi", "info", "paths", "components", "security"], "additionalProperties": False,
    "properties": {
        "openapi": {"enum": ["3.0.3"]}, "servers": {"type": "array"}, "security": {"type": "array"},
        "info": {"type": "object", "required": ["title", "version", "description"]},
        "paths": {"type": "object", "additionalProperties": False, "patternProperties": {"^/": {
            "type": "object", "minProperties": 1, "additionalProperties": False,
            "properties": {method: OPERATION for method in METHODS}}}},
        "components": {"type": "object", "additionalProperties": False, "properties": {
            "securitySchemes": {"type": "object"}, "responses": {"type": "object", "additionalProperties": RESPONSE},
            "schemas": {"type": "object", "additionalProperties": SCHEMA}}}}}


def walk(value):
    """Yields all objects in the value."""
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    for one in value if isinstance(value, list) else []:
        yield from walk(one)


def check_document(checks, api):
    errors = [f"{'.'.join(map(str, error.absolute_path))}: {error.message[:200]}"
              for error in jsonschema.Draft4Validator(DOCUMENT).iter_errors(api.spec)]
    checks.check(not errors, "\n".join(errors))
    for name, schema in api.schemas.items():
        try:
            jsonschema.Draft4Validator.check_schema(schema)
        except jsonschema.SchemaError as error:
            checks.check(False, f"schema {name}: {error.message}")


def check_references(checks, api):
    """Each reference resolves, and each component is referenced, except event data."""
    known = {f"#/components/{kind}/{name}" for kind in ("schemas", "responses") for name in api.spec["components"][kind]}
    used = {one["$ref"] for one in walk(api.spec) if "$ref" in one}
    checks.check(used <= known, f"lead nowhere: {used - known}")
    left = {name.rsplit("/", 1)[1] for name in known - used}
    checks.check(all(name.endswith("Event") for name in left), f"nobody refers to some of {left}")


def check_paths(checks, api):
    numbers = []
    for path, methods in api.spec["paths"].items():
        for operation in methods.values():
            numbers.append(operation["operationId"])
            given = [one["name"] for one in operation.get("parameters", []) if one["in"] == "path" and one["required"]]
            checks.check(given == re.findall(r"\{(\w+)\}", path), f"{path}: parameters {given}")
    checks.check(len(numbers) == len(set(numbers)), f"operationIds: {numbers}")


def main():
    checks = Checks("openapi")
    api = Api()
    check_document(checks, api)
    check_references(checks, api)
    check_paths(checks, api)
    checks.check(as_json_schema({"type": "object", "nullable": True}) == {"anyOf": [{"type": "object"}, {"type": "null"}]}, "nullable")
    checks.end()


main()
