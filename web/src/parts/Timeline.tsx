import { type ReactNode, useMemo, useState } from 'react';

import { personOf, type Version } from '../model';
import { bars, moved, type Span, timeOf, whole, within, zoomed } from '../timeline';
import { bytes, moment, momentOf } from '../words';

interface Props {
  versions: readonly Version[]; // newest first
  chosen: string; // '': the live file
  isLive: boolean; // somebody writes it
  onChoose: (version: string) => void;
  onMore?: () => void; // there are older ones
}

const COLUMNS = 160;
const ROWS_AT_ONCE = 100;

// A drawing for the overview, and a list of radio buttons that says and does the same: it is what a
// keyboard and a screen reader use.
export function Timeline({ versions, chosen, isLive, onChoose, onMore }: Props) {
  const limits = useMemo(() => whole(versions), [versions]);
  const [zoom, setZoom] = useState<Span>(); // undefined: all
  const [rows, setRows] = useState(ROWS_AT_ONCE);
  const span = zoom ?? limits;
  const shown = useMemo(() => within(versions, span), [versions, span]);
  const one = versions.find((each) => each.version === chosen);
  const middle = one === undefined ? (span.from + span.to) / 2 : timeOf(one);

  return (
    <section className="timeline" aria-label="Versions">
      <h2>Versions</h2>
      {versions.length > 1 && (
        <>
          <Drawing versions={versions} span={span} chosen={chosen} onChoose={onChoose} />
          <p className="span">
            {momentOf(span.from)} to {momentOf(span.to)}: {shown.length} of{' '}
            {versions.length} versions; bars are the bytes that changed
          </p>
          <div className="zoom" role="group" aria-label="Zoom of the timeline">
            <button type="button" onClick={() => setZoom(zoomed(span, 0.5, middle, limits))}>
              Zoom in
            </button>
            <button type="button" onClick={() => setZoom(zoomed(span, 2, middle, limits))}>
              Zoom out
            </button>
            <button type="button" onClick={() => setZoom(moved(span, -0.5, limits))}>
              Earlier
            </button>
            <button type="button" onClick={() => setZoom(moved(span, 0.5, limits))}>
              Later
            </button>
            <button type="button" onClick={() => setZoom(undefined)}>
              All
            </button>
          </div>
        </>
      )}
      <fieldset className="versions">
        <legend>What is shown below</legend>
        <Choice value="" chosen={chosen} onChoose={onChoose}>
          {isLive ? 'Live: each new cut as it comes' : 'The newest state'}
        </Choice>
        {shown.slice(0, rows).map((each) => (
          <Choice key={each.version} value={each.version} chosen={chosen} onChoose={onChoose}>
            <strong>{each.version}</strong> {moment(each.server_time)}, {personOf(each.verified_user, each.writer)}
            {each.writer !== undefined && each.writer.program !== '' && ` by ${each.writer.program}`},{' '}
            {bytes(each.size_bytes)}, {bytes(each.changed_bytes)} changed
            {each.tags.map((tag) => (
              <span key={tag} className="tag">
                {tag}
              </span>
            ))}
            {each.comment !== '' && <q>{each.comment}</q>}
          </Choice>
        ))}
      </fieldset>
      {shown.length > rows && (
        <button type="button" onClick={() => setRows(rows + ROWS_AT_ONCE)}>
          Show more
        </button>
      )}
      {onMore && (
        <button type="button" onClick={onMore}>
          Load older versions
        </button>
      )}
    </section>
  );
}

interface ChoiceProps {
  value: string;
  chosen: string;
  onChoose: (version: string) => void;
  children: ReactNode;
}

function Choice({ value, chosen, onChoose, children }: ChoiceProps) {
  const id = `version-${value}`;
  return (
    <div className="choice">
      <input
        type="radio"
        id={id}
        name="version"
        value={value}
        checked={value === chosen}
        onChange={() => onChoose(value)}
      />
      <label htmlFor={id}>{children}</label>
    </div>
  );
}

interface DrawingProps {
  versions: readonly Version[];
  span: Span;
  chosen: string;
  onChoose: (version: string) => void;
}

function Drawing({ versions, span, chosen, onChoose }: DrawingProps) {
  const drawn = useMemo(() => bars(versions, span, COLUMNS), [versions, span]);
  return (
    <svg className="drawing" viewBox="0 0 800 80" preserveAspectRatio="none" aria-hidden="true">
      {drawn.map((bar) => (
        <rect
          key={bar.version}
          aria-hidden="true"
          className={bar.version === chosen ? 'bar chosen' : 'bar'}
          x={bar.x * 796}
          y={80 - 76 * bar.height}
          width={4}
          height={76 * bar.height}
          onClick={() => onChoose(bar.version)}
        />
      ))}
    </svg>
  );
}
