/**
 * Selects the sessions of `all` that `session` started, directly or through others of them.
 * `starterOf` returns the id of the session that started a given one.
 */
export function startedBy<T extends { readonly id: string }>(
  session: string,
  all: readonly T[],
  starterOf: (one: T) => string | undefined,
): readonly T[] {
  const found = new Set<string>([session]);
  for (let size = 0; size < found.size; ) {
    size = found.size;
    for (const one of all) if (found.has(starterOf(one) ?? '')) found.add(one.id);
  }
  return all.filter(({ id }) => id !== session && found.has(id));
}
