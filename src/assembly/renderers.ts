import type { EpochProof } from '../objects/assembly-proof.js';
import { canonicalJson } from '../objects/canonical-json.js';
import { hashText } from '../objects/hashes.js';
import { defined } from '../values/defined.js';
import { AROUND_VERSION, renderAround, TAIL_PLACES } from './around-tail.js';
import { assemble } from './assemble.js';
import {
  type AssemblyRecord,
  type CallLayout,
  type FrozenTail,
  type LayoutName,
  RENDERER_VERSION,
  type SectionName,
  type SentLayout,
} from './assembly-record.js';
import { beginEpoch, EPOCH_VERSION, type EpochState, epochText, renderEpoch } from './epoch/epoch-state.js';
import type { AssemblyInput } from './layout.js';
import { type RenderedMessage, renderMessages } from './render-messages.js';
import { sentSections } from './sent-body.js';

/** The name of a renderer in records. */
export type RendererName = AssemblyRecord['renderer'];

/** A context in the form that its record measures: one text, or canonical JSON for messages. */
export interface Rendered {
  readonly record: AssemblyRecord;
  readonly whole: string;
  readonly sections: readonly { readonly name: SectionName; readonly text: string }[];
}

/** A record's rendering parameters besides the options. */
export interface RenderedHow {
  readonly layout: LayoutName | SentLayout;
  readonly tail: FrozenTail | undefined;
  /** For an epoch's request: the epoch's state, and the proof of the request's place there. */
  readonly epoch?: { readonly state: EpochState; readonly proof: EpochProof };
  /** For a request that an agent built itself: its body. */
  readonly body?: string;
}

/** A renderer of contexts: its version, its layouts and its function. */
export interface Renderer {
  /** Increase this when the same state gives other bytes than before. */
  readonly version: number;
  readonly layouts: readonly (LayoutName | SentLayout)[];
  readonly render: (input: AssemblyInput, how: RenderedHow) => Rendered;
}

/** Version of the record of a request that an agent built itself. */
const SENT_VERSION = 1;

const NO_TAIL: FrozenTail = { turn: Number.MAX_SAFE_INTEGER, results: [] };

function sectionTexts(
  record: AssemblyRecord,
  system: string | null,
  messages: readonly RenderedMessage[],
): Rendered['sections'] {
  const text = (name: SectionName): string =>
    name === 'system' ? (system ?? '') : canonicalJson(messages.filter(({ section }) => section === name));
  return record.sections.map(({ name }) => ({ name, text: text(name) }));
}

/**
 * All renderers by name. A handed-out context is rendered again by its renderer (decision E7), so a
 * renderer that was ever used is never removed.
 */
export const RENDERERS: Readonly<Record<RendererName, Renderer>> = {
  text: {
    version: RENDERER_VERSION,
    layouts: ['ssot'],
    render: (input) => {
      const { record, text, sections } = assemble(input);
      return { record, whole: text, sections };
    },
  },
  messages: {
    version: RENDERER_VERSION,
    layouts: ['ssot'],
    render: (input) => {
      const { record, system, messages } = renderMessages(input);
      return { record, whole: canonicalJson({ system, messages }), sections: sectionTexts(record, system, messages) };
    },
  },
  around: {
    version: AROUND_VERSION,
    layouts: Object.keys(TAIL_PLACES) as CallLayout[],
    render: (input, { layout, tail = NO_TAIL }) => {
      const { record, system, before, after, references } = renderAround(input, tail, layout as CallLayout);
      const whole = canonicalJson({ system, before, references: [...references], after });
      return { record, whole, sections: sectionTexts(record, system, [...before, ...after]) };
    },
  },
  epoch: {
    version: EPOCH_VERSION,
    layouts: ['epoch'],
    render: (input, { tail = NO_TAIL, epoch }) => {
      const state =
        epoch?.state ?? beginEpoch({ ...input, index: input.pool.map(({ id }) => id), chatSince: () => [] }, tail.turn);
      const { record, system, before, notes, lines } = renderEpoch(state, input, {
        tail,
        ...defined({ epoch: epoch?.proof }),
      });
      const messages = [...before, ...notes.map(({ message }) => message)];
      return {
        record,
        whole: epochText({ system, before, notes, lines }),
        sections: sectionTexts(record, system, messages),
      };
    },
  },
  sent: {
    version: SENT_VERSION,
    layouts: ['sent'],
    render: ({ options }, { body = '' }) => {
      const sections = sentSections(body);
      const how = { renderer: 'sent', layout: 'sent', version: SENT_VERSION, options } as const;
      return {
        record: {
          ...how,
          sections: sections.map(({ record }) => record),
          blocks: [],
          chars: body.length,
          sha256: hashText(body),
        },
        whole: body,
        sections: sections.map(({ record: { name }, text }) => ({ name, text })),
      };
    },
  },
};

/** Returns whether a name is a layout for a context around a harness's running turn. */
export const isLayout = (name: string): name is LayoutName => name === 'epoch' || Object.hasOwn(TAIL_PLACES, name);

/** Returns the renderer of a record; undefined for one of a later version. */
export function rendererOf(name: string): Renderer | undefined {
  return Object.hasOwn(RENDERERS, name) ? RENDERERS[name as RendererName] : undefined;
}
