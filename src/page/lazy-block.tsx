import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';

/** Distance from the screen at which a block is rendered, as a share of the screen's height. */
const MARGIN = '150% 0px';

interface LazyBlockProps {
  /** The height in pixels until it is rendered. */
  readonly height: number;
  /** Whether to render it immediately, for example because a link leads into it. */
  readonly isWanted?: boolean;
  readonly children: () => ComponentChildren;
}

/** Renders a part of a long view once it comes near the screen. */
export function LazyBlock({ height, isWanted = false, children }: LazyBlockProps) {
  const box = useRef<HTMLDivElement>(null);
  const [isNear, setNear] = useState(isWanted);
  useLayoutEffect(() => {
    const element = box.current;
    if (element === null || isNear) return undefined;
    const observer = new IntersectionObserver(
      (entries) => {
        if (entries.some(({ isIntersecting }) => isIntersecting)) setNear(true);
      },
      { rootMargin: MARGIN },
    );
    observer.observe(element);
    return () => observer.disconnect();
  }, [isNear]);
  const isShown = isNear || isWanted;
  return (
    <div ref={box} style={isShown ? {} : { height: `${height}px` }}>
      {isShown ? children() : null}
    </div>
  );
}
