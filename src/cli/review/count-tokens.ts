/** The program of a thread that counts tokens: for each list of texts that it is sent, their counts. */
import { parentPort } from 'node:worker_threads';
import { countTokens } from '../../history/ask/token-count.js';

parentPort?.on('message', (texts: readonly string[]) => parentPort?.postMessage(texts.map(countTokens)));
