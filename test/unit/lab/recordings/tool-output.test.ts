import { describe, expect, test } from '@jest/globals';
import {
  fileWindows,
  listedByEditor,
  numberedAnswer,
  numberedText,
  printedFile,
  terminalText,
} from '../../../../src/lab/recordings/entries/shown-file.js';

describe('windows on files', () => {
  test('show the whole file from the first line to the last, each line with its end', () => {
    expect(fileWindows('[File: /r/a.py (2 lines total)]\n1:x = 1\n2:')).toEqual([
      { path: '/r/a.py', moment: 'after', text: 'x = 1\n\n', whole: true, start_line: 1, total_lines: 2 },
    ]);
  });

  test('report their first line if they are inside, and are never the whole file', () => {
    const [shown] = fileWindows(
      '[File: a b.py (90 lines total)]\r\n(40 more lines above)\r\n41:\tif x:\r\n42:7:seven\r\n(48 more lines ' +
        'below)\r\n',
    );
    expect(shown).toEqual({
      path: 'a b.py',
      moment: 'after',
      text: '\tif x:\n7:seven',
      whole: false,
      start_line: 41,
      total_lines: 90,
    });
  });

  test('of a failed edit show nothing of its preview, and the earlier text of the original', () => {
    const windows = fileWindows(
      'This is how your edit would have looked if applied\n-----\n[File: a.py (1 lines ' +
        'total)]\n1:bad\n-----\n\nThis is the original code before your edit\n-----\n[File: a.py (1 lines ' +
        'total)]\n1:good\n',
    );
    expect(windows.map(({ moment, text }) => [moment, text])).toEqual([['before', 'good\n']]);
  });

  test('end at numbers that do not count up', () => {
    const [shown] = fileWindows('[File: a.py (9 lines total)]\n1:a\n2:b\n9:z\n');
    expect(shown).toMatchObject({ text: 'a\nb', whole: false });
  });

  test('have the gutter of agent skills removed as well', () => {
    const [shown] = fileWindows(
      '[File: /w/a.ts (2 lines total after edit)]\n(this is the beginning of the file)\n1|a\n2|b\n(this is the ' +
        'end of the file)\n[Jupyter]',
    );
    expect(shown).toMatchObject({ path: '/w/a.ts', text: 'a\nb\n', whole: true });
  });
});

describe('answers of editors', () => {
  const answer = (body: string): string => `Here's the result of running \`cat -n\` on /r/a.py:\n${body}`;

  test('show a whole file for a full view, without the empty line after its last end', () => {
    expect(numberedAnswer(answer('     1\ta\n     2\t\n'), { path: '/r/a.py', whole: true })).toEqual([
      { path: '/r/a.py', moment: 'after', text: 'a\n', whole: true, start_line: 1, total_lines: 1 },
    ]);
  });

  test('are parts for a ranged view, an edit snippet and a clipped answer', () => {
    expect(numberedAnswer(answer('     5\ta\n     6\tb\n'), { whole: false })[0]).toMatchObject({
      path: '/r/a.py',
      start_line: 5,
      whole: false,
    });
    const snippet =
      "The file /r/b.py has been edited. Here's the result of running `cat -n` on a snippet of /r/b.py:\n     " +
      '1\tz\nReview the changes';
    expect(numberedAnswer(snippet, { whole: false })[0]).toMatchObject({ path: '/r/b.py', text: 'z', whole: false });
    expect(numberedAnswer(answer('     1\ta\n<response clipped>'), { whole: true })[0]).toMatchObject({ whole: false });
  });

  test('show no file if they show nothing', () => {
    expect(numberedAnswer('No replacement was performed', { path: '/r/a.py', whole: true })).toEqual([]);
  });

  test('list the paths of a listing; without marks only names that look like files', () => {
    const head = "Here's the files and directories up to 2 levels deep in /r, excluding hidden items:\n";
    expect(listedByEditor(`${head}/r/\n/r/src/\n/r/src/Makefile\n\n3 hidden files`)).toEqual([
      '/r/',
      '/r/src/',
      '/r/src/Makefile',
    ]);
    expect(listedByEditor(`${head}/r\n/r/src\n/r/v1.2\n/r/v1.2/a.py\n/r/b.py`)).toEqual(['/r/v1.2/a.py', '/r/b.py']);
    expect(listedByEditor('File created successfully')).toBeUndefined();
  });

  test('are numbered text only if every line has its number', () => {
    expect(numberedText(' 9 | a\n10 | \n11 |', 'spacedBar')).toEqual({ lines: ['a', '', ''], first: 9 });
    expect(numberedText(' 9 | a\nno number', 'spacedBar')).toBeUndefined();
  });
});

describe('files that a command printed', () => {
  test.each([
    ['cat a.py', 'a.py', true, 1],
    ['cd src && cat "a b.py"', 'src/a b.py', true, 1],
    ["sed -n '5,9p' /r/a.py", '/r/a.py', false, 5],
    ['head -n 50 a.py', 'a.py', true, 1],
    ['head -2 a.py', undefined, false, 1],
    ['head -n 2 a.py', 'a.py', false, 1],
    ['cat a.py b.py', undefined, false, 1],
    ['cat a.py | grep x', undefined, false, 1],
    ['cat *.py', undefined, false, 1],
    ['cat -n a.py', undefined, false, 1],
    ['cat $FILE', undefined, false, 1],
    ['cat > a.py', undefined, false, 1],
  ])('are recognised from the command: %s', (command, path, whole, start) => {
    const shown = printedFile(command, 'one\ntwo\n');
    expect(shown?.path).toBe(path);
    if (shown !== undefined) expect(shown).toMatchObject({ whole, start_line: start, text: 'one\ntwo\n' });
  });

  test("omit a terminal's control sequences, returns and prompt", () => {
    expect(terminalText('\u001b[?2004l\u001b[1mone\u001b[0m\r\ntwo\r\ndev@box:/srv/app # ')).toEqual({
      text: 'one\ntwo\n',
      promptDir: '/srv/app',
    });
  });
});
