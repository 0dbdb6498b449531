/**
 * Defines the dashboard's elements, and types them in the JSX of React 19.
 *
 * @module tallyfold/dashboard/react
 */

import type { ClassAttributes, HTMLAttributes } from "react";
import type { BrushEvent, FailureEvent, LoadEvent, SelectEvent, StateEvent } from "./dashboard.js";

/** The props of a dashboard element in React: its properties, its events, and the props of all HTML elements. */
export type DashboardProps<E extends HTMLElement> = Omit<HTMLAttributes<E>, keyof Own<E>> &
  ClassAttributes<E> &
  Partial<Own<E>> &
  DashboardHandlers;

type Own<E extends HTMLElement> = Omit<E, keyof HTMLElement | "refresh">;

/** The handlers of the dashboard's events, under the names that React 19 expects. */
export interface DashboardHandlers {
  "ontallyfold-select"?: ((event: SelectEvent) => void) | undefined;
  "ontallyfold-brush"?: ((event: BrushEvent) => void) | undefined;
  "ontallyfold-state"?: ((event: StateEvent) => void) | undefined;
  "ontallyfold-load"?: ((event: LoadEvent) => void) | undefined;
  "ontallyfold-error"?: ((event: FailureEvent) => void) | undefined;
}

type Elements = {
  [Name in Extract<keyof HTMLElementTagNameMap, `tallyfold-${string}`>]: DashboardProps<
    HTMLElementTagNameMap[Name]
  >;
};

declare module "react" {
  namespace JSX {
    interface IntrinsicElements extends Elements {}
  }
}
