import { z } from 'zod';
import { ApiError, type ProblemPlace } from './problem.js';

/** Places that one problem names. */
const MOST_PLACES = 20;

const pointer = (path: readonly PropertyKey[]): string =>
  path.map((part) => `/${String(part).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');

/** One place for each thing that is wrong; a field that is not known is a place of its own. */
function placesOf(issue: z.core.$ZodIssue): readonly ProblemPlace[] {
  if (issue.code !== 'unrecognized_keys') return [{ pointer: pointer(issue.path), detail: issue.message }];
  return issue.keys.map((key) => ({ pointer: pointer([...issue.path, key]), detail: issue.message }));
}

/** Says which names are known where one is not. */
function wording({ code, inst }: z.core.$ZodRawIssue, kind: string): string | undefined {
  if (code !== 'unrecognized_keys') return undefined;
  const known = inst instanceof z.ZodObject ? Object.keys(inst.shape) : [];
  return `unknown ${kind}; known here: ${known.length === 0 ? 'none' : known.join(', ')}`;
}

/**
 * Reads what a request brought as its schema says. `kind` is what a member is called in messages. Throws ApiError `invalid-request` that names each place
 * by a JSON pointer, fields that are not known among them.
 */
export function readInput<S extends z.ZodType>(schema: S, input: unknown, kind: 'field' | 'parameter'): z.output<S> {
  const parsed = schema.safeParse(input, { error: (issue) => wording(issue, kind) });
  if (parsed.success) return parsed.data;
  const places = parsed.error.issues.flatMap(placesOf).slice(0, MOST_PLACES);
  const whole = kind === 'field' ? 'the body' : 'the parameters';
  const detail = places.map((place) => `${place.pointer === '' ? whole : place.pointer}: ${place.detail}`).join('; ');
  throw new ApiError('invalid-request', detail.slice(0, 1_000), places);
}

/** Reads the parameters of an address. Throws as `readInput` does, and for a parameter that stands twice. */
export function readParameters<S extends z.ZodType>(schema: S, query: URLSearchParams): z.output<S> {
  const given = new Map<string, string>();
  for (const [name, value] of query) {
    if (given.has(name)) throw new ApiError('invalid-request', `the parameter ${name.slice(0, 200)} stands twice`);
    given.set(name, value);
  }
  return readInput(schema, Object.fromEntries(given), 'parameter');
}
