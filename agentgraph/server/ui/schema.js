// Whether a value fits a JSON schema. What a schema says that this does not know is left to the server.

const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
const TYPES = {
  object: isObject, array: Array.isArray, null: (value) => value === null,
  string: (value) => typeof value === "string", boolean: (value) => typeof value === "boolean",
  number: (value) => typeof value === "number", integer: Number.isInteger,
};
const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

/** The first thing about a value that does not fit, with its place before it; null if the value fits. */
export function problemOf(schema, value, root = schema, place = "", depth = 0) {
  if (!isObject(schema) || depth > 32) return null;
  const inside = (schema, value, more) => problemOf(schema, value, root, place + more, depth + 1);
  if (typeof schema.$ref === "string") {
    const parts = schema.$ref.slice(2).split("/").map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
    return inside(parts.reduce((at, part) => at?.[part], root), value, "");
  }
  const types = [schema.type ?? []].flat();
  if (types.length && !types.some((type) => TYPES[type]?.(value))) return `${place} must be of type ${types.join(" or ")}`;
  if ("const" in schema && !same(schema.const, value)) return `${place} must be ${JSON.stringify(schema.const)}`;
  if (schema.enum && !schema.enum.some((one) => same(one, value))) return `${place} must be one of ${JSON.stringify(schema.enum)}`;
  if (value < schema.minimum || value > schema.maximum) return `${place} must be from ${schema.minimum ?? "-∞"} to ${schema.maximum ?? "∞"}`;
  for (const some of [schema.anyOf, schema.oneOf].filter(Array.isArray)) {
    const problems = some.map((one) => inside(one, value, ""));
    if (!problems.includes(null)) return some.length === 1 ? problems[0] : `${place} fits none of its forms`;
  }
  const parts = (schema.allOf ?? []).map((one) => inside(one, value, ""));
  if (isObject(value)) {
    const missing = (schema.required ?? []).find((name) => !(name in value));
    if (missing !== undefined) return `${place} lacks ${missing}`;
    for (const [name, one] of Object.entries(value)) parts.push(inside(schema.properties?.[name] ?? schema.additionalProperties, one, ` › ${name}`));
  }
  if (Array.isArray(value)) value.forEach((one, at) => parts.push(inside(schema.prefixItems?.[at] ?? schema.items, one, ` › ${at}`)));
  return parts.find(Boolean) ?? null;
}
