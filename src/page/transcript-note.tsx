/** Says what a transcript does not have of the requests: none of them was seen. */
export function TranscriptNote() {
  return (
    <div class="verdict warn" role="note">
      These are the requests as the agent's transcript has them. It has no tools, no hidden reasoning, no notes of the
      harness, and often no system prompt. The provider counted these, too, and counts text with its own vocabulary.
    </div>
  );
}
