import { tokensOf } from '../../values/token-estimate.js';
import { maskingPolicy, type Rights } from './masking.js';
import { type ContextPolicy, charsOf, itemsOf } from './policy.js';
import { summarised, withoutSystem } from './summary.js';

interface CodexNotesSettings {
  /** A new context begins above this number of tokens. */
  readonly over: number;
  /** Size in characters of the notes that the model takes into the new context. */
  readonly notes: number;
  readonly rights: Rights;
}

/** Number of newest tokens of user messages that stay in a new context. */
const USER_TOKENS = 20_000;

/**
 * Codex's notes: the model keeps notes, and its tool `new_context` starts a new context from them.
 */
export function codexNotes({ over, notes, rights }: CodexNotesSettings): ContextPolicy {
  return maskingPolicy({
    name: `Codex notes, over ${over / 1_000}k`,
    family: 'Codex notes',
    source: 'openai/codex 0.153: notes, searchable windows, new_context',
    fidelity: 'bounded',
    about:
      `After a request over ${over} tokens, a new context begins with the user's newest messages and ` +
      `${notes} characters of notes. ` +
      'Models choose the moment and the words themselves.',
    reach: 'activate',
    guide: 1_200,
    rights,
    rule: () => (call, conversation) => {
      if (tokensOf(charsOf(conversation.parts(call))) <= over) return undefined;
      let left = USER_TOKENS;
      const stays = new Set(
        itemsOf(call)
          .filter(({ kind }) => kind === 'user')
          .toReversed()
          .filter(({ text }) => {
            left -= tokensOf(text.length);
            return left >= 0;
          }),
      );
      const leave = withoutSystem(call).filter((item) => !stays.has(item));
      return summarised(call, conversation, { leave, chars: notes });
    },
  });
}
