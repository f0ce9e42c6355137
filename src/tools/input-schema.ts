import { z } from 'zod';

/** A JSON Schema (2020-12) of a tool's arguments, in the words that every client passes on: no `$ref`, `anyOf` or `const`. */
export interface InputSchema {
  readonly type: 'object';
  readonly properties: { readonly [name: string]: object };
  readonly required?: readonly string[];
}

/** The arguments of a tool as zod knows them. */
export type ArgumentShape = Readonly<Record<string, z.ZodType>>;

/** Takes out what zod adds and no agent needs; the bounds of safe integers say nothing that a model could use. */
function tidy(schema: Record<string, unknown>): void {
  if (schema.maximum === Number.MAX_SAFE_INTEGER) delete schema.maximum;
  if (schema.minimum === Number.MIN_SAFE_INTEGER) delete schema.minimum;
}

/** The JSON Schema of a tool's arguments; keys beyond the named ones are left open, because clients add their own. */
export function inputSchema(shape: ArgumentShape): InputSchema {
  const { properties, required } = z.toJSONSchema(z.object(shape), {
    io: 'input',
    override: ({ jsonSchema }) => tidy(jsonSchema as Record<string, unknown>),
  });
  const names = required ?? [];
  return { type: 'object', properties: (properties ?? {}) as InputSchema['properties'], ...(names.length > 0 ? { required: names } : {}) };
}
