import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { Refused } from './access.js';

/** The stage of an action with a preview. */
type Stage<T, D> =
  | { readonly at: 'nothing' }
  | { readonly at: 'asking' | 'doing' }
  | { readonly at: 'told'; readonly told: T }
  | { readonly at: 'done'; readonly done: D }
  | { readonly at: 'refused'; readonly code: string; readonly why: string };

/** A person's action: previewed first, then done or cancelled. */
export interface StepByStepProps<T, D> {
  /** Label of the first button. */
  readonly label: string;
  /** Accessible name of the action. */
  readonly name: string;
  /** Requests the preview. */
  readonly ask: () => Promise<T>;
  /** Undefined if the action changes nothing; then only the preview is shown. */
  readonly run: (told: T) => (() => Promise<D>) | undefined;
  readonly tell: (told: T) => ComponentChildren;
  readonly tellDone: (done: D) => ComponentChildren;
  /** Whether it is done at once, without a preview: it only adds something. */
  readonly isDirect?: boolean;
}

/** Shows a button, then the preview with a button to do it, then the result. */
export function StepByStep<T, D>({ label, name, ask, run, tell, tellDone, isDirect = false }: StepByStepProps<T, D>) {
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
    if (stage.at === 'told') confirm.current?.focus();
  }, [stage.at]);
  const leave = (): void => {
    setStage({ at: 'nothing' });
    begin.current?.focus();
  };
  const perform = (work: () => Promise<D>): void => {
    setStage({ at: 'doing' });
    work().then((done) => setStage({ at: 'done', done }), refuse);
  };
  const action = stage.at === 'told' ? run(stage.told) : undefined;
  return (
    <span class="step-by-step">
      <button
        type="button"
        ref={begin}
        aria-label={name}
        aria-expanded={stage.at !== 'nothing'}
        onClick={() => {
          setStage({ at: 'asking' });
          ask().then((told) => {
            const work = isDirect ? run(told) : undefined;
            if (work === undefined) setStage({ at: 'told', told });
            else perform(work);
          }, refuse);
        }}
      >
        {label}
      </button>
      {stage.at !== 'nothing' && (
        <span class={stage.at === 'refused' ? 'told bad' : 'told'} role={stage.at === 'refused' ? 'alert' : 'status'}>
          {stage.at === 'asking' && 'Being counted…'}
          {stage.at === 'doing' && 'Being recorded…'}
          {stage.at === 'told' && tell(stage.told)}
          {stage.at === 'done' && tellDone(stage.done)}
          {stage.at === 'refused' && `${stage.code}: ${stage.why}`}{' '}
          {action !== undefined && (
            <button type="button" ref={confirm} onClick={() => perform(action)}>
              Do it
            </button>
          )}{' '}
          {(stage.at === 'told' || stage.at === 'refused' || stage.at === 'done') && (
            <button type="button" onClick={leave}>
              {action === undefined ? 'Close' : 'Leave it'}
            </button>
          )}
        </span>
      )}
    </span>
  );
}
