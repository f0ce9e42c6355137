/** The prose rules of this project as textlint rules. CONTRIBUTING.md explains them to a writer. */
import { SentenceSplitterSyntax, splitAST } from 'sentence-splitter';

const MAX_WORDS = 25;

/** Words that made our text hard to read, each with what to write. */
const BANNED = [
  [/\b(?:who|what)ever\b/i, 'name the actor or the thing'],
  [/\b(?:no|some)body(?:'s)?\b/i, 'name the actor, or use the passive'],
  [/\bthat which\b/i, 'name the thing'],
  [/\bof (?:which|whom)\b/i, 'start a new sentence with the noun'],
  [/\bthere where\b/i, 'say "where"'],
  [/\btells?\b/i, 'return, report, name, say, distinguish'],
  [/\btold\b/i, 'reported, returned, distinguished'],
  [/\bdear(?:er|est)?\b/i, 'costly, expensive'],
  [/\blet go\b/i, 'released, dropped, removed'],
  [/\baffair\b/i, 'responsibility, or name the owner'],
  [/\b(?:has|have|had) (?:its|their) end\b/i, 'ends, settles'],
  [/\b(?:is|are|was|were) met\b/i, 'occurs, is found'],
  [/\bstands? (?:there|in)\b/i, 'is in, is stored in'],
  [/\bnone (?:but|is|are)\b/i, 'only, no <noun>'],
  [/\bbrings? about\b/i, 'causes'],
  [/\bin vain\b/i, 'without effect'],
  [/\bso that .* so that\b/i, 'two sentences'],
  [/\bof its own accord\b/i, 'automatically'],
  [/\bwithout a word\b/i, 'silently'],
  [/\bas it were\b/i, 'nothing'],
];

/**
 * Matches a statement that begins with a pronoun instead of its subject. Does not match questions.
 */
const RIDDLE = /^(?:What|Who|Whom|Whose|Which)\b(?![^?]*\?)/;
const WORD = /[\p{L}\p{N}][\p{L}\p{N}'’./_-]*/gu;

const skips = (node, Syntax) => {
  for (let at = node.parent; at; at = at.parent)
    if (at.type === Syntax.Code || at.type === Syntax.BlockQuote) return true;
  return false;
};

/** Reports words on the list above. */
export const bannedWords = (context) => {
  const { Syntax, RuleError, report, getSource, locator } = context;
  return {
    [Syntax.Str](node) {
      if (skips(node, Syntax)) return;
      const text = getSource(node);
      for (const [pattern, instead] of BANNED) {
        const found = pattern.exec(text);
        if (found === null) continue;
        report(node, new RuleError(`"${found[0]}": ${instead}`, { padding: locator.at(found.index) }));
      }
    },
  };
};

const words = (text) => (text.replace(/`[^`]*`/g, 'code').match(WORD) ?? []).length;

/**
 * Returns whether `plainSentences` can find anything in a text. Most texts are shorter than one
 * long sentence, so the slow search for the ends of sentences is skipped. A piece of code counts as
 * a word.
 */
const mayNeedSplitting = (text) =>
  (text.match(WORD) ?? []).length + text.split('`').length - 1 > MAX_WORDS ||
  /\b(?:What|Who|Whom|Whose|Which)\b/.test(text);

/** Returns whether the rules can find anything in a text that ends at a blank line. */
export const mayBreakRules = (text) => mayNeedSplitting(text) || BANNED.some(([pattern]) => pattern.test(text));

/**
 * Reports sentences of more than `MAX_WORDS` words, and statements that begin with a pronoun for a
 * subject.
 */
export const plainSentences = (context) => {
  const { Syntax, RuleError, report, getSource, locator } = context;
  return {
    [Syntax.Paragraph](node) {
      if (!mayNeedSplitting(getSource(node))) return;
      for (const sentence of splitAST(node).children) {
        if (sentence.type !== SentenceSplitterSyntax.Sentence || skips(sentence, Syntax)) continue;
        const padding = locator.at(sentence.range[0] - node.range[0]);
        // The splitter does not separate a bold lead from the sentence after it.
        for (const text of sentence.raw.split(/(?<=[.?!:]\*\*)\s+/)) {
          const count = words(text);
          if (count > MAX_WORDS)
            report(node, new RuleError(`a sentence of ${count} words: at most ${MAX_WORDS}`, { padding }));
          if (RIDDLE.test(text)) {
            const subject = text.split(/\s/)[0];
            report(node, new RuleError(`a statement begins with "${subject}": name its subject`, { padding }));
          }
        }
      }
    },
  };
};
