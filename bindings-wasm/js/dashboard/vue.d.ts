/**
 * Defines the dashboard's elements, and types them in the templates of Vue 3.
 *
 * @module tallyfold/dashboard/vue
 */

import type { HTMLAttributes, PublicProps } from "vue";
import type { BrushEvent, FailureEvent, LoadEvent, SelectEvent, StateEvent } from "./dashboard.js";

/** The props of a dashboard element in Vue: its properties, its events, and the props of all HTML elements. */
export type DashboardProps<E extends HTMLElement> = Omit<HTMLAttributes, keyof Own<E>> &
  PublicProps &
  Partial<Own<E>> &
  DashboardHandlers;

type Own<E extends HTMLElement> = Omit<E, keyof HTMLElement | "refresh">;

/** The handlers of the dashboard's events. In a template, write `@tallyfold-select`. */
export interface DashboardHandlers {
  onTallyfoldSelect?: ((event: SelectEvent) => void) | undefined;
  onTallyfoldBrush?: ((event: BrushEvent) => void) | undefined;
  onTallyfoldState?: ((event: StateEvent) => void) | undefined;
  onTallyfoldLoad?: ((event: LoadEvent) => void) | undefined;
  onTallyfoldError?: ((event: FailureEvent) => void) | undefined;
}

type Elements = {
  [Name in Extract<keyof HTMLElementTagNameMap, `tallyfold-${string}`>]: new () => {
    $props: DashboardProps<HTMLElementTagNameMap[Name]>;
  };
};

declare module "vue" {
  interface GlobalComponents extends Elements {}
}
