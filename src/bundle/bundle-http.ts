import * as z from 'zod';
import { contractEntries, type HttpContract } from '../http/http-contract.js';
import { sessionName } from '../http/question-parameters.js';
import { MaskError } from '../redaction/text-mask.js';
import { BundleError } from './bundle-error.js';

const { plainQuestion } = contractEntries({ requests: {}, answers: {} });

/** The query parameters for masking a file that a route returns. */
export const maskParameters = {
  redact: z
    .enum(['true', 'false'])
    .optional()
    .describe("Mask text by the session's rules, by `rules`, and by the known forms of secrets"),
  rules: z.string().max(4_000).optional().describe('More texts to mask, one per line; write a pattern between slashes'),
};

/** The route that returns a session as a bundle, by its OpenAPI id. */
export const BUNDLE_QUESTIONS = {
  bundle: plainQuestion({
    path: '/v1/sessions/{id}/bundle',
    summary: 'A session as one gzipped file of lines, for other databases; an error ends the connection early',
    parameters: z.strictObject({
      id: sessionName.describe('The session, optionally followed by @MOMENT'),
      with_redacted: z
        .enum(['true', 'false'])
        .optional()
        .describe('Write the session without masking its text, even if it has redaction rules'),
      ...maskParameters,
    }),
    example: { id: 'fix-cart' },
    media: 'application/gzip',
    kind: 'stream',
    ask: async ({ timeline, access, hiddenTexts }, { id, with_redacted: withRedacted, redact, rules }) => {
      await access.requireNamed(id);
      const { bundleOf } = await import('./export-bundle.js');
      return bundleOf(timeline, id, {
        hiddenTexts,
        ignoresRules: withRedacted === 'true',
        rules: redact === 'true' ? (rules ?? '') : undefined,
      });
    },
  }),
};

/** The HTTP interface of bundles. */
export const BUNDLE_HTTP: HttpContract = {
  questions: BUNDLE_QUESTIONS,
  statusOf: (error) =>
    error instanceof MaskError
      ? { status: 400, title: 'The rules cannot be used' }
      : error instanceof BundleError
        ? { status: error.code === 'redacted' ? 409 : 500, title: 'The session cannot be written as a file' }
        : undefined,
};
