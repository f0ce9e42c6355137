import type { ComponentChildren } from 'preact';
import type { Answered } from './ask.js';

/** Shows an answer, or that it is loading or was refused. */
export function AnswerBox<T>({
  answer,
  children,
}: {
  readonly answer: Answered<T>;
  readonly children: (value: T) => ComponentChildren;
}) {
  if (answer.state === 'waiting')
    return (
      <p class="note" role="status">
        Reading…
      </p>
    );
  if (answer.state === 'refused')
    return (
      <div class="refused" role="alert">
        <strong>{answer.refused.code}</strong>
        <p>{answer.refused.message}</p>
      </div>
    );
  return <>{children(answer.value)}</>;
}
