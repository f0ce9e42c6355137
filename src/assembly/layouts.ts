import { type Assembly, assemble } from './assemble.js';
import { type LayoutName, RENDERER_VERSION } from './assembly-record.js';
import type { AssemblyInput } from './layout.js';
import { type MessageAssembly, renderMessages } from './render-messages.js';

/** How a context is put together, as one text and as messages with parts; pure, and its records name the layout and its version. */
export interface LayoutRenderers {
  /** Rises when the same state would give other bytes. */
  readonly version: number;
  readonly text: (input: AssemblyInput) => Assembly;
  readonly messages: (input: AssemblyInput) => MessageAssembly;
}

/** Every layout by its name. What was handed out in one is made again in it (decision E7): one that was used once is never taken out. */
export const LAYOUTS: Readonly<Record<LayoutName, LayoutRenderers>> = {
  ssot: { version: RENDERER_VERSION, text: assemble, messages: renderMessages },
};

/** Whether there is a layout of this name; a record may come from a later version. */
export const isLayoutName = (name: string): name is LayoutName => Object.hasOwn(LAYOUTS, name);
