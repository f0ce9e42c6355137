import * as z from 'zod';

type CamelCase<Name> = Name extends `${infer Head}_${infer Rest}` ? `${Head}${Capitalize<CamelCase<Rest>>}` : Name;

/** What a value of the wire is made from: names in camelCase, times as dates, and undefined for null. */
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

function shape(schema: unknown, value: unknown): unknown {
  if (schema instanceof z.ZodNullable) return value === undefined || value === null ? null : shape(schema.unwrap(), value);
  if (schema instanceof z.ZodOptional) return value === undefined ? undefined : shape(schema.unwrap(), value);
  if (schema instanceof z.ZodArray) return (value as readonly unknown[]).map((element) => shape(schema.element, element));
  if (!(schema instanceof z.ZodObject)) return value instanceof Date ? value.toISOString() : value;
  const members = Object.entries(schema.shape).map(([name, member]): [string, unknown] => [
    name,
    shape(member, (value as Readonly<Record<string, unknown>>)[camelCase(name)]),
  ]);
  return Object.fromEntries(members.filter(([, member]) => member !== undefined));
}

/** A value as the wire has it: of each object the members that the schema names, in its order. */
export function wireShape<S extends z.ZodType>(schema: S, value: Shaped<z.input<S>>): z.input<S> {
  return shape(schema, value) as z.input<S>;
}
