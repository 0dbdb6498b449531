// Formats numbers, shares and times with Intl, in the page's language and the chosen time zone.

/** The formats of one language and one time zone. */
export interface Formats {
  /** A number of events, exact. */
  count(value: bigint | number): string;
  /** A number of events in few characters, such as `1.2M`. It is only shown alongside exact numbers. */
  compact(value: bigint | number): string;
  /** A change, with its sign. */
  delta(value: bigint | number): string;
  /** A share from 0 to 1; a dash if there is none. */
  share(value: number | null | undefined): string;
  /** A time of day. */
  time(ms: number | string): string;
  date(ms: number | string): string;
  /** Date and time of day. */
  moment(ms: number | string): string;
  /** The time from `start` to `end`. */
  span(start: number | string, end: number | string): string;
  /** The name of the zone at this time, to show next to times, such as `UTC` or `GMT+1`. */
  zoneAt(ms: number | string): string;
}

const kept = new Map<string, Formats>();

/** The name of a zone for Intl. For a zone that does not exist, this is `UTC`, and the element shows an error. */
export function zoneName(zone: string | undefined): string {
  if (zone === "local") return Intl.DateTimeFormat().resolvedOptions().timeZone;
  return zone && isZone(zone) ? zone : "UTC";
}

const zones = new Map([
  ["UTC", true],
  ["local", true],
]);

/** Whether the zone exists. */
export function isZone(zone: string): boolean {
  const known = zones.get(zone);
  if (known !== undefined) return known;
  let is = true;
  try {
    new Intl.DateTimeFormat("en", { timeZone: zone });
  } catch {
    is = false;
  }
  zones.set(zone, is);
  return is;
}

/** @param zone `UTC`, `local`, or the name of a zone. */
export function formats(locale: string | undefined, zone: string): Formats {
  const key = `${locale}\n${zone}`;
  const found = kept.get(key) ?? made(locale, zone);
  kept.set(key, found);
  return found;
}

function made(given: string | undefined, zone: string): Formats {
  const locale = valid(given);
  // Making a formatter takes milliseconds, and the first view needs only half of them.
  const soon = <T>(make: () => T) => {
    let own: T | undefined;
    return () => (own ??= make());
  };
  const numbers = (options?: Intl.NumberFormatOptions) =>
    soon(() => new Intl.NumberFormat(locale, options));
  const times = (options: Intl.DateTimeFormatOptions) =>
    soon(() => new Intl.DateTimeFormat(locale, { ...options, timeZone }));
  const timeZone = zoneName(zone);
  const number = numbers();
  const compact = numbers({ notation: "compact", maximumFractionDigits: 1 });
  const delta = numbers({ signDisplay: "exceptZero" });
  const percent = numbers({
    style: "percent",
    minimumFractionDigits: 2,
    maximumFractionDigits: 2,
  });
  const small = numbers({ style: "percent", maximumSignificantDigits: 2 });
  const clock = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" } as const;
  const day = { month: "short", day: "numeric" } as const;
  const time = times(clock);
  const date = times(day);
  const moment = times({ ...day, ...clock });
  const named = times({ timeZoneName: "short" });
  return {
    count: (value) => number().format(value),
    compact: (value) => compact().format(value),
    delta: (value) => delta().format(value),
    share: (value) => {
      if (value === null || value === undefined || Number.isNaN(value)) return "–";
      // A tiny share isn't shown as 0%, and a share just below 1 isn't shown as 100%.
      if (value > 0 && value < 0.00005) return `<${small().format(0.0001)}`;
      if (value < 1 && value >= 0.99995) return `>${percent().format(0.9999)}`;
      return percent().format(value);
    },
    time: (at) => time().format(ms(at)),
    date: (at) => date().format(ms(at)),
    moment: (at) => moment().format(ms(at)),
    // `formatRange` isn't used, because its first call takes a tenth of a second.
    span: (start, end) => {
      const isOneDay = date().format(ms(start)) === date().format(ms(end));
      return `${moment().format(ms(start))} – ${(isOneDay ? time : moment)().format(ms(end))}`;
    },
    zoneAt: (at) => {
      const parts = named().formatToParts(ms(at));
      return parts.find(({ type }) => type === "timeZoneName")?.value ?? timeZone;
    },
  };
}

/** The language of an element: its property `locale`, the nearest attribute `lang`, or the language of the page. */
export function languageOf(
  element: HTMLElement & { locale?: string | undefined },
): string | undefined {
  if (element.locale) return element.locale;
  return element.closest<HTMLElement>("[lang]")?.lang || document.documentElement.lang || undefined;
}

function ms(at: number | string): number {
  return typeof at === "string" ? Date.parse(at) : at;
}

/** The language; `undefined`, which stands for the browser's language, if `locale` is not the name of a language. */
function valid(locale: string | undefined): string | undefined {
  try {
    return locale === undefined ? undefined : Intl.getCanonicalLocales(locale)[0];
  } catch {
    return undefined;
  }
}
