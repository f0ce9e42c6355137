import { counted, plural } from './words.js';

/** The two counts of a call's request, as far as they are known. */
interface RequestSizes {
  /** Tokens by the provider's count. */
  readonly provider: number | undefined;
  /** Tokens of the texts that are known here. */
  readonly texts: number | undefined;
  readonly isTranscript: boolean;
}

/** Names both counts of a call's request: the provider's, and that of the texts known here. */
export function requestSize({ provider, texts, isTranscript }: RequestSizes): string {
  const where = isTranscript ? 'in the transcript' : 'in its text';
  if (provider === undefined) return texts === undefined ? '' : `${plural(texts, 'token')} ${where}`;
  const known = texts === undefined ? '' : `, ${counted(texts)} ${where}`;
  return `${plural(provider, 'token')} counted by the provider${known}`;
}
