/**
 * The member that a table itself has under a name; undefined where it has none. Names from outside (`constructor`, `__proto__`) never reach what every object inherits.
 */
export function ownMember<T>(table: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined;
}
