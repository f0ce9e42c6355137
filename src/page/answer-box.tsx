import type { ComponentChildren } from 'preact';
import type { Refused } from './access.js';
import type { Answered } from './ask.js';

/** Shows why there is no answer. A missing record is shown as a note, not as an error. */
function RefusedBox({ refused }: { readonly refused: Refused }) {
  const isAbsent = refused.status === 404 || refused.code === 'not-seen';
  return (
    <div class={isAbsent ? 'note' : 'refused'} role={isAbsent ? 'status' : 'alert'}>
      {refused.message}
    </div>
  );
}

/** Shows that an answer is loading. */
export function Waiting() {
  return (
    <p class="note waiting" role="status">
      Reading…
    </p>
  );
}

/** Shows an answer, or that it is loading or was refused. */
export function AnswerBox<T>({
  answer,
  children,
}: {
  readonly answer: Answered<T>;
  readonly children: (value: T) => ComponentChildren;
}) {
  if (answer.state === 'waiting') return <Waiting />;
  if (answer.state === 'refused') return <RefusedBox refused={answer.refused} />;
  return <>{children(answer.value)}</>;
}
