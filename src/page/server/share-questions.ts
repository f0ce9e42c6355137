import * as z from 'zod';
import { maskParameters } from '../../bundle/bundle-http.js';
import { requireSession } from '../../history/rebuild/find-session.js';
import { contractEntries } from '../../http/http-contract.js';
import { pin, sessionName } from '../../http/question-parameters.js';
import { wireShape } from '../../http/wire-shape.js';
import { shownBasis } from '../../review/http/review-answers.js';
import { PAGE_ANSWERS } from './page-schemas.js';

const { question, plainQuestion } = contractEntries({ requests: {}, answers: PAGE_ANSWERS });

/** Maximum number of listed texts. All are counted. */
const MOST_LISTED = 200;

/** The questions by which a person shares a session. `web` is the folder with the page's build. */
export const shareQuestions = (web: string) => ({
  redaction: question({
    path: '/v1/redaction',
    summary: 'The texts of a session that a redacted file would mask, the first appearance first',
    parameters: z.strictObject({ session: sessionName, rules: maskParameters.rules, ...pin }),
    example: { session: 'fix-cart' },
    answer: 'Redaction',
    kind: 'long',
    ask: async ({ timeline, hiddenTexts }, { session: name, rules = '' }) => {
      const [{ sessionMask }, { searchTexts }, { hiddenRanges }] = await Promise.all([
        import('../../bundle/export-mask.js'),
        import('../../history/search/search.js'),
        import('../../redaction/mark.js'),
      ]);
      const session = await requireSession(timeline.present, name);
      const { masked } = await sessionMask({ timeline, session, hiddenTexts }, { rules });
      const ranges = (text: string) => {
        const shown = masked(text);
        // If the hidden parts of a text cannot be located, the whole text counts as hidden.
        const hidden = hiddenRanges(text, shown) ?? [{ from: 0, end: text.length }];
        return shown === text ? [] : hidden.map(({ from, end }) => ({ at: from, end }));
      };
      const found = await searchTexts(
        timeline,
        { ranges, required: [] },
        { session, order: 'first', limit: MOST_LISTED, countsAll: true },
      );
      return wireShape(PAGE_ANSWERS.Redaction, { ...found, basis: shownBasis(found.basis) });
    },
  }),
  sharedPage: plainQuestion({
    path: '/v1/sessions/{id}/page',
    summary: 'A session as one gzipped page that needs no server; an error ends the connection early',
    parameters: z.strictObject({ id: sessionName, ...maskParameters }),
    example: { id: 'fix-cart' },
    media: 'application/gzip',
    kind: 'stream',
    ask: async ({ timeline, access, hiddenTexts }, { id, redact, rules }) => {
      await access.requireNamed(id);
      const session = await requireSession(timeline.present, id);
      const { sharedPage } = await import('./write-page.js');
      return sharedPage(
        { timeline, session, hiddenTexts },
        { web, rules: redact === 'true' ? (rules ?? '') : undefined },
      );
    },
  }),
});
