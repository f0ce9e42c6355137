/** What is known to be frozen to its bottom: a part may have come frozen at its surface only. */
const frozen = new WeakSet<object>();

/** Freezes plain data to its bottom and gives it back. What was frozen here before is not walked again. Plain data has no cycles. */
export function freezeDeep<V>(value: V): V {
  if (value === null || typeof value !== 'object' || frozen.has(value)) return value;
  Object.freeze(value);
  for (const member of Object.values(value)) freezeDeep(member);
  frozen.add(value);
  return value;
}
