/** A call in a transcript: its tool, and its arguments as one line of JSON. */
const CALL = /^(\S+) (\{.*\})\s*$/s;

const shownValue = (value: unknown): string => {
  if (typeof value !== 'string') return JSON.stringify(value);
  return value.includes('\n') ? `\n${value}` : value;
};

/** Returns a call with one argument a line, and with the line breaks of its texts. */
export function callLines(text: string): string | undefined {
  const [, tool, json = ''] = CALL.exec(text) ?? [];
  if (tool === undefined) return undefined;
  try {
    const args = Object.entries(JSON.parse(json) as object);
    return [tool, ...args.map(([name, value]) => `${name}: ${shownValue(value)}`)].join('\n');
  } catch {
    return undefined;
  }
}
