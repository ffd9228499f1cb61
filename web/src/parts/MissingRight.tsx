interface Props {
  rights: readonly string[] | undefined; // undefined: not known yet
  right: string;
  to: string; // what it is for
}

// Why a button is not there; nothing where it is.
export function MissingRight({ rights, right, to }: Props) {
  if (rights === undefined || rights.includes(right)) return null;
  return (
    <p className="missing">
      To {to} you need the right <code>{right}</code> to this file, which you do not have.
    </p>
  );
}
