/** What is asked for once, however often it is wanted: the answer that is known or under way, else that of `ask`. A failure is not kept. */
export function askOnce<Key, Value>(known: Map<Key, Promise<Value>>, key: Key, ask: () => Promise<Value>): Promise<Value> {
  const found = known.get(key);
  if (found !== undefined) return found;
  const asked = ask();
  known.set(key, asked);
  asked.catch(() => known.delete(key));
  return asked;
}
