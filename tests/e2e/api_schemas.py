"""Reads the API's description and checks answers against it."""
import json
import os
import re

import jsonschema

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SPEC = os.path.join(ROOT, "daemon/service/openapi.json")
METHODS = {"get", "put", "post", "delete"}


def load():
    with open(SPEC) as file:
        return json.load(file)


def as_json_schema(value):
    """Converts an OpenAPI 3.0 schema, which may contain `nullable`, to JSON Schema."""
    if isinstance(value, list):
        return [as_json_schema(one) for one in value]
    if not isinstance(value, dict):
        return value
    schema = {key: as_json_schema(one) for key, one in value.items()}
    return {"anyOf": [schema, {"type": "null"}]} if schema.pop("nullable", None) is True else schema


class Api:
    def __init__(self):
        self.spec = load()
        self.schemas = as_json_schema(self.spec["components"]["schemas"])
        self.root = {"components": {"schemas": self.schemas}}

    def wrong(self, schema, value):
        """Returns the errors of a value under a schema or a schema's name; "" if there are none."""
        if isinstance(schema, str):
            schema = {"$ref": f"#/components/schemas/{schema}"}
        checker = jsonschema.Draft4Validator({**self.root, **as_json_schema(schema)})
        errors = [f"{'.'.join(map(str, error.absolute_path))}: {error.message[:200]}" for error in checker.iter_errors(value)]
        return "; ".join(errors)

    def operation(self, method, path):
        """Returns the operation for a method and a request path without its query, or None."""
        for pattern, methods in sorted(self.spec["paths"].items(), key=lambda item: item[0].count("{")):
            if re.fullmatch(re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(pattern)), path) and method.lower() in methods:
                return methods[method.lower()]
        return None

    def judge(self, method, path, status, kind, text):
        """Returns the error in an answer; "" if there is none."""
        operation = self.operation(method, path.split("?")[0])
        if not operation:
            return f"{method} {path} is not described"
        response = operation["responses"].get(str(status))
        if not response:
            return f"{method} {path}: {status} is not described"
        if "$ref" in response:
            response = self.spec["components"]["responses"][response["$ref"].rsplit("/", 1)[1]]
        content = response["content"].get(kind)
        if not content:
            return f"{method} {path}: {status} is {kind}, not {' or '.join(response['content'])}"
        wrong = self.wrong(content["schema"], json.loads(text) if kind == "application/json" else text)
        return wrong and f"{method} {path}, {status}: {wrong}"
