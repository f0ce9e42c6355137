import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Page } from 'playwright-core';

/** The widths and colours in which every view is looked at. */
export const WIDTHS = [1_440, 1_024, 390] as const;
export const SCHEMES = ['light', 'dark'] as const;

/**
 * Pictures are kept at a quarter of their size, so that the layout is visible and letters are not.
 */
const SCALE = 4;
const HEIGHT = 900;
const QUALITY = 0.85;
/** Colours that differ by more than this count as different. */
const MOST_SHADE = 48;
/** The share of a picture's pixels that may have another colour, because times and ids change. */
const MOST_CHANGED = 0.02;

/** A picture of a view in one width and colour. */
export interface Cell {
  readonly width: (typeof WIDTHS)[number];
  readonly scheme: (typeof SCHEMES)[number];
  readonly png: Buffer;
}

/** Puts the pictures of a view into one sheet, as WebP in base64. */
async function sheetOf(page: Page, cells: readonly Cell[]): Promise<string> {
  const pictures = cells.map(({ width, scheme, png }) => ({
    x: WIDTHS.slice(0, WIDTHS.indexOf(width)).reduce((sum, one) => sum + one / SCALE, 0),
    y: (SCHEMES.indexOf(scheme) * HEIGHT) / SCALE,
    width: width / SCALE,
    data: png.toString('base64'),
  }));
  const whole = WIDTHS.reduce((sum, one) => sum + one / SCALE, 0);
  return page.evaluate(
    async ([all, width, height, each, quality]) => {
      const canvas = document.createElement('canvas');
      [canvas.width, canvas.height] = [width, height];
      const context = canvas.getContext('2d');
      for (const picture of all) {
        const image = new Image();
        image.src = `data:image/png;base64,${picture.data}`;
        await image.decode();
        context?.drawImage(image, picture.x, picture.y, picture.width, each);
      }
      return canvas.toDataURL('image/webp', quality).split(',')[1] ?? '';
    },
    [pictures, whole, (HEIGHT * SCHEMES.length) / SCALE, HEIGHT / SCALE, QUALITY] as const,
  );
}

/** Returns, for each picture in two sheets, the share of the pixels that differ. */
function changedParts(page: Page, known: string, made: string): Promise<readonly number[]> {
  return page.evaluate(
    async ([before, after, widths, rows, height, most]) => {
      const pointsOf = async (data: string) => {
        const image = new Image();
        image.src = `data:image/webp;base64,${data}`;
        await image.decode();
        const canvas = document.createElement('canvas');
        [canvas.width, canvas.height] = [image.width, image.height];
        const context = canvas.getContext('2d');
        context?.drawImage(image, 0, 0);
        return context;
      };
      const [old, fresh] = [await pointsOf(before), await pointsOf(after)];
      const found: number[] = [];
      for (let row = 0; row < rows; row += 1) {
        let x = 0;
        for (const width of widths) {
          const [a, b] = [old, fresh].map((one) => one?.getImageData(x, row * height, width, height).data ?? []);
          let changed = 0;
          for (let i = 0; i < (b?.length ?? 0); i += 4)
            if ([0, 1, 2].some((n) => Math.abs((a?.[i + n] ?? 0) - (b?.[i + n] ?? 0)) > most)) changed += 1;
          found.push(changed / (width * height));
          x += width;
        }
      }
      return found;
    },
    [known, made, WIDTHS.map((width) => width / SCALE), SCHEMES.length, HEIGHT / SCALE, MOST_SHADE] as const,
  );
}

/**
 * Compares the pictures of a view with those that were approved by eye. Returns which differ, by
 * how much. With `approves` it keeps them as the approved ones.
 */
export async function differingPictures(
  page: Page,
  { file, cells, approves }: { readonly file: string; readonly cells: readonly Cell[]; readonly approves: boolean },
): Promise<readonly string[]> {
  const made = await sheetOf(page, cells);
  if (approves) {
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, Buffer.from(made, 'base64'));
    return [];
  }
  const parts = await changedParts(page, (await readFile(file)).toString('base64'), made);
  const wrong = SCHEMES.flatMap((scheme, row) =>
    WIDTHS.flatMap((width, column) => {
      const part = parts[row * WIDTHS.length + column] ?? 1;
      return part > MOST_CHANGED ? [`${width} ${scheme}: ${(part * 100).toFixed(1)} % of the points differ`] : [];
    }),
  );
  if (wrong.length > 0) await writeFile(`${file}.new.webp`, Buffer.from(made, 'base64'));
  return wrong;
}
