import type { ComponentChildren } from 'preact';
import type { Answered } from './ask.js';

/** What an answer is shown as; while it is on its way, and where it is refused, that is said instead. */
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
