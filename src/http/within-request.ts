import { withinLimit } from '../process/within-limit.js';
import { ApiError } from './problem.js';

/**
 * Maximum time in milliseconds that a request waits for the database. It is below one minute, a
 * common timeout of clients.
 */
const TIMEOUT_MS = 50_000;

/**
 * Limits a request's wait for the database. @throws {ApiError} node-starting – the work took longer
 * than the timeout
 */
export function withinRequest<T>(work: Promise<T>): Promise<T> {
  return withinLimit(work, TIMEOUT_MS, () => {
    throw new ApiError('node-starting', 'the database is still starting; retry in a few seconds');
  });
}
