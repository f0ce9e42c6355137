import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { Refused } from './access.js';

/** The stage of an action with a preview. */
type Stage<T, D> =
  | { readonly at: 'nothing' }
  | { readonly at: 'loading' | 'running' }
  | { readonly at: 'preview'; readonly preview: T }
  | { readonly at: 'done'; readonly result: D }
  | { readonly at: 'refused'; readonly code: string; readonly why: string };

/** A person's action: previewed first, then done or cancelled. */
export interface StepByStepProps<T, D> {
  /** Label of the first button. */
  readonly label: string;
  /** Accessible name of the action. */
  readonly name: string;
  /** Requests the preview. */
  readonly ask: () => Promise<T>;
  /** Returns the work to confirm. Undefined if the action would change nothing. */
  readonly run: (preview: T) => (() => Promise<D>) | undefined;
  readonly renderPreview: (preview: T) => ComponentChildren;
  readonly renderResult: (result: D) => ComponentChildren;
}

/** Shows a button, then the preview with a button to confirm, then the result. */
export function StepByStep<T, D>({ label, name, ask, run, renderPreview, renderResult }: StepByStepProps<T, D>) {
  const [stage, setStage] = useState<Stage<T, D>>({ at: 'nothing' });
  const confirm = useRef<HTMLButtonElement>(null);
  const begin = useRef<HTMLButtonElement>(null);
  const refuse = (error: unknown): void =>
    setStage({
      at: 'refused',
      code: error instanceof Refused ? error.code : 'unreachable',
      why: error instanceof Error ? error.message : String(error),
    });
  useEffect(() => {
    if (stage.at === 'preview') confirm.current?.focus();
  }, [stage.at]);
  const leave = (): void => {
    setStage({ at: 'nothing' });
    begin.current?.focus();
  };
  const perform = (work: () => Promise<D>): void => {
    setStage({ at: 'running' });
    work().then((result) => setStage({ at: 'done', result }), refuse);
  };
  const action = stage.at === 'preview' ? run(stage.preview) : undefined;
  return (
    <span class="step-by-step">
      <button
        type="button"
        ref={begin}
        aria-label={name}
        aria-expanded={stage.at !== 'nothing'}
        onClick={() => {
          setStage({ at: 'loading' });
          ask().then((preview) => setStage({ at: 'preview', preview }), refuse);
        }}
      >
        {label}
      </button>
      {stage.at !== 'nothing' && (
        <span
          class={stage.at === 'refused' ? 'outcome bad' : 'outcome'}
          role={stage.at === 'refused' ? 'alert' : 'status'}
        >
          {stage.at === 'loading' && 'Loading the preview…'}
          {stage.at === 'running' && 'Working…'}
          {stage.at === 'preview' && renderPreview(stage.preview)}
          {stage.at === 'done' && renderResult(stage.result)}
          {stage.at === 'refused' && `${stage.code}: ${stage.why}`}{' '}
          {action !== undefined && (
            <button type="button" ref={confirm} onClick={() => perform(action)}>
              Do it
            </button>
          )}{' '}
          {(stage.at === 'preview' || stage.at === 'refused' || stage.at === 'done') && (
            <button type="button" onClick={leave}>
              {action === undefined ? 'Close' : 'Cancel'}
            </button>
          )}
        </span>
      )}
    </span>
  );
}
