/**
 * Returns the table's own member with a name, or undefined. Names from outside, such as
 * `constructor` or `__proto__`, never reach inherited members.
 */
export function ownMember<T>(table: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined;
}
