import * as z from 'zod';

type CamelCase<Name> = Name extends `${infer Head}_${infer Rest}` ? `${Head}${Capitalize<CamelCase<Rest>>}` : Name;

/** The type of a value before `wireShape`: camelCase names, dates, undefined instead of null. */
export type Shaped<T> = T extends readonly (infer E)[]
  ? readonly Shaped<E>[]
  : T extends object
    ? { readonly [K in keyof T as null extends T[K] ? never : CamelCase<K>]: Shaped<T[K]> } & {
        readonly [K in keyof T as null extends T[K] ? CamelCase<K> : never]?: Shaped<T[K]> | undefined;
      }
    : string extends T
      ? T | Date
      : T;

const camelCase = (name: string): string => name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());

type Shaper = (value: unknown) => unknown;

/** The converter of each schema, cached because an answer has thousands of equal parts. */
const shapers = new WeakMap<object, Shaper>();

function shaperOf(schema: object): Shaper {
  const known = shapers.get(schema);
  if (known !== undefined) return known;
  const made = madeShaper(schema);
  shapers.set(schema, made);
  return made;
}

/** Converts a value by the option that its discriminator names. */
function unionShaper({ options, def: { discriminator } }: z.ZodDiscriminatedUnion): Shaper {
  const shaped = new Map(
    (options as readonly z.ZodObject[]).map((option) => [
      (option.shape[discriminator] as z.ZodLiteral).value,
      shaperOf(option),
    ]),
  );
  return (value) => {
    const name = (value as Readonly<Record<string, unknown>>)[camelCase(discriminator)];
    const shaper = shaped.get(name as string);
    if (shaper === undefined) throw new Error(`BUG: no schema for ${discriminator} ${String(name)}`);
    return shaper(value);
  };
}

function madeShaper(schema: unknown): Shaper {
  if (schema instanceof z.ZodNullable) {
    const inner = shaperOf(schema.unwrap() as object);
    return (value) => (value === undefined || value === null ? null : inner(value));
  }
  if (schema instanceof z.ZodOptional) {
    const inner = shaperOf(schema.unwrap() as object);
    return (value) => (value === undefined ? undefined : inner(value));
  }
  if (schema instanceof z.ZodArray) {
    const element = shaperOf(schema.element as object);
    return (value) => (value as readonly unknown[]).map((one) => element(one));
  }
  if (schema instanceof z.ZodDiscriminatedUnion) return unionShaper(schema);
  if (!(schema instanceof z.ZodObject)) return (value) => (value instanceof Date ? value.toISOString() : value);
  const members = Object.entries(schema.shape).map(([name, member]) => ({
    name,
    from: camelCase(name),
    made: shaperOf(member as object),
  }));
  return (value) => {
    const shaped: Record<string, unknown> = {};
    for (const { name, from, made } of members) {
      const member = made((value as Readonly<Record<string, unknown>>)[from]);
      if (member !== undefined) shaped[name] = member;
    }
    return shaped;
  };
}

/**
 * Converts a value to its wire format: the members of each object that the schema names, in its
 * order.
 */
export function wireShape<S extends z.ZodType>(schema: S, value: Shaped<z.input<S>>): z.input<S> {
  return shaperOf(schema)(value) as z.input<S>;
}
