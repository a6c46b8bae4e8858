/** The pages: a row here is all that the frame has to know of one. */

import type { ComponentType } from "preact";
import type { Scope } from "./api/me";

/** What a page is given. */
export interface PageProps {
  /** What follows the page's own name in the path, decoded: `/sessions/s-1` gives ["s-1"]. */
  readonly rest: readonly string[];
}

/** A page of the navigation. */
export interface Page {
  /** The first part of its path; empty for the first page. */
  readonly name: string;
  readonly title: string;
  readonly group: "Watch" | "Remember" | "Understand" | "Operate";
  /** The path of its icon, on a field of 24 by 24, drawn as a line. */
  readonly icon: string;
  /** Goes there after `g`. */
  readonly key: string;
  /** What its key must be able to do; reading, where nothing is said. */
  readonly needs?: Scope;
  readonly load: () => Promise<{ readonly default: ComponentType<PageProps> }>;
}

export const PAGES: readonly Page[] = [
  {
    name: "",
    title: "Overview",
    group: "Watch",
    icon: "M4 13h6V4H4zM14 20h6v-9h-6zM4 20h6v-3H4zM14 7h6V4h-6z",
    key: "o",
    load: () => import("./pages/Overview"),
  },
  {
    name: "sessions",
    title: "Sessions",
    group: "Watch",
    icon: "M4 6h16M4 12h16M4 18h10",
    key: "s",
    load: () => import("./pages/Sessions"),
  },
  {
    name: "events",
    title: "Events",
    group: "Watch",
    icon: "M3 12h4l3-8 4 16 3-8h4",
    key: "e",
    load: () => import("./pages/Events"),
  },
  {
    name: "agents",
    title: "Agents and users",
    group: "Watch",
    icon: "M9 4a4 4 0 1 0 0 8a4 4 0 1 0 0-8zM2 20c0-4 3-6 7-6s7 2 7 6M16 5a3.5 3.5 0 0 1 0 7M18 14.5c2.5 .8 4 2.5 4 5.5",
    key: "u",
    load: () => import("./pages/Agents"),
  },
  {
    name: "search",
    title: "Search",
    group: "Remember",
    icon: "M11 4a7 7 0 1 0 0 14a7 7 0 1 0 0-14zM16.5 16.5L21 21",
    key: "f",
    load: () => import("./pages/Search"),
  },
  {
    name: "context",
    title: "Context",
    group: "Remember",
    icon: "M4 5h16v11H9l-5 4zM8 9h8M8 12.5h5",
    key: "c",
    load: () => import("./pages/Context"),
  },
  {
    name: "lessons",
    title: "Lessons",
    group: "Remember",
    icon: "M5 4h11l3 3v13H5zM8 10h8M8 14h6",
    key: "l",
    load: () => import("./pages/Lessons"),
  },
  {
    name: "memories",
    title: "Memories",
    group: "Remember",
    icon: "M12 20s-7-4.5-7-10a4 4 0 0 1 7-2.5A4 4 0 0 1 19 10c0 5.500-7 10-7 10z",
    key: "m",
    load: () => import("./pages/Memories"),
  },
  {
    name: "episodes",
    title: "Episodes",
    group: "Remember",
    icon: "M5 12a7 7 0 1 1 2 5M5 20v-4h4M12 8v4l3 2",
    key: "p",
    load: () => import("./pages/Episodes"),
  },
  {
    name: "reflections",
    title: "Reflections",
    group: "Remember",
    icon: "M4 5h16v11H9l-5 4zM8 9h8M8 12h5",
    key: "r",
    load: () => import("./pages/Reflections"),
  },
  {
    name: "knowledge",
    title: "Knowledge",
    group: "Remember",
    icon: "M12 6c-2-2-5-2-8-1v13c3-1 6-1 8 1 2-2 5-2 8-1V5c-3-1-6-1-8 1zM12 6v13",
    key: "k",
    load: () => import("./pages/Knowledge"),
  },
  {
    name: "insights",
    title: "Insights",
    group: "Understand",
    icon: "M4 20V10M10 20V4M16 20v-7M22 20H2",
    key: "i",
    load: () => import("./pages/Insights"),
  },
  {
    name: "learning",
    title: "Learning",
    group: "Understand",
    icon: "M3 19h18M4 15c4 0 4-9 9-9h7M17 3l3 3-3 3",
    key: "n",
    needs: "learn",
    load: () => import("./pages/Learning"),
  },
  {
    name: "skills",
    title: "Skills",
    group: "Remember",
    icon: "M12 3l2.600 6 6.400.6-4.800 4.300 1.400 6.400L12 17l-5.600 3.300 1.400-6.400L3 9.600 9.400 9z",
    key: "b",
    load: () => import("./pages/Skills"),
  },
  {
    name: "patterns",
    title: "Patterns",
    group: "Remember",
    icon: "M8 5c-2 0-3 1-3 3v2c0 1-1 2-2 2 1 0 2 1 2 2v2c0 2 1 3 3 3M16 5c2 0 3 1 3 3v2c0 1 1 2 2 2-1 0-2 1-2 2v2c0 2-1 3-3 3M12 9v6M9.500 10.500l5 3M14.500 10.500l-5 3",
    key: "t",
    load: () => import("./pages/Patterns"),
  },
  {
    name: "alerts",
    title: "Alerts",
    group: "Operate",
    icon: "M6 16V11a6 6 0 1 1 12 0v5l2 2H4zM10 21h4",
    key: "a",
    load: () => import("./pages/Alerts"),
  },
  {
    name: "proof",
    title: "Proof",
    group: "Operate",
    icon: "M12 3l8 3v6c0 5-3.500 8-8 9-4.500-1-8-4-8-9V6zM8.500 12l2.500 2.500 4.500-5",
    key: "v",
    load: () => import("./pages/Proof"),
  },
  {
    name: "admin",
    title: "Admin",
    group: "Operate",
    icon: "M4 7h10M18 7h2M4 17h2M10 17h10M16 5v4M8 15v4",
    key: "d",
    needs: "admin",
    load: () => import("./pages/Admin"),
  },
];

/** Return the page that a path belongs to. */
export function pageOf(name: string | undefined): Page | undefined {
  return PAGES.find((page) => page.name === (name ?? ""));
}
