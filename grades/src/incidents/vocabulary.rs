//! The names of the simulated traffic. They are of the kind that the sandbox has; none is a real customer or vendor.

#[rustfmt::skip]
pub(super) const WRITE_KEYS: [&str; 10] = [
    "web-eu", "web-us", "ios-eu", "android-us", "server-eu", "web-apac", "email-us", "kiosk-eu", "tv-us", "partner-mea",
];

#[rustfmt::skip]
pub(super) const EVENT_NAMES: [&str; 24] = [
    "Page Viewed", "Product Viewed", "Search Started", "Product Clicked", "Cart Updated", "Video Started", "Order Created",
    "Article Viewed", "Account Created", "Cart Removed", "Order Completed", "Message Opened", "Playlist Shared",
    "Profile Updated", "Review Created", "Shipment Updated", "Subscription Started", "Survey Completed", "Ticket Opened",
    "Trial Started", "Wishlist Updated", "Coupon Clicked", "Invoice Created", "Video Completed",
];

#[rustfmt::skip]
pub(super) const INTEGRATIONS: [&str; 12] = [
    "Warehouse", "Product Analytics", "Ad Conversions", "Email Marketing", "CRM", "Push Notifications", "Attribution",
    "Recommendations", "Fraud Scoring", "Webhooks", "Session Replay", "Customer Support",
];

/// The reasons of everyday; the one of consent is first.
pub(super) const REASONS: [&str; 6] = [
    "compliance filter: consent withheld",
    "compliance filter: region blocked",
    "playbook filter: internal traffic",
    "playbook filter: sampled out",
    "pipeline filter: schema mismatch",
    "pipeline filter: duplicate event",
];

/// Reasons that appear for the first time in an incident.
pub(super) const NEW_REASONS: [&str; 8] = [
    "pipeline filter: payload too large",
    "pipeline filter: unknown property",
    "playbook filter: audience expired",
    "compliance filter: age unknown",
    "pipeline filter: invalid timestamp",
    "playbook filter: quota reached",
    "compliance filter: retention passed",
    "pipeline filter: missing identity",
];
