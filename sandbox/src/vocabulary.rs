//! The vocabulary of the seeded traffic. No name belongs to a real customer or vendor.

pub(crate) const PLATFORMS: [&str; 8] =
    ["web", "ios", "android", "server", "email", "kiosk", "tv", "partner"];

pub(crate) const REGIONS: [&str; 5] = ["eu", "us", "apac", "latam", "mea"];

#[rustfmt::skip]
pub(crate) const OBJECTS: [&str; 20] = [
    "Product", "Cart", "Order", "Account", "Article", "Video", "Search", "Coupon", "Invoice",
    "Message", "Playlist", "Profile", "Review", "Shipment", "Subscription", "Survey", "Ticket",
    "Trial", "Wishlist", "Page",
];

#[rustfmt::skip]
pub(crate) const ACTIONS: [&str; 10] = [
    "Viewed", "Clicked", "Created", "Updated", "Removed", "Started", "Completed", "Shared",
    "Opened", "Failed",
];

#[rustfmt::skip]
pub(crate) const INTEGRATIONS: [&str; 30] = [
    "Warehouse", "Data Lake", "Email Marketing", "Push Notifications", "Ad Conversions",
    "Product Analytics", "CRM", "Customer Support", "Session Replay", "Feature Flags",
    "A/B Testing", "Attribution", "Fraud Scoring", "Recommendations", "Search Index", "Loyalty",
    "Billing", "Surveys", "Chat", "SMS", "Audience Sync", "Lookalike Ads", "Revenue Analytics",
    "Error Tracking", "Event Stream", "Webhooks", "Personalization", "Affiliate Network",
    "Call Center", "Data Quality",
];

/// Assumption `reason_values`: the reference lists the kinds of filters, but not their texts.
pub(crate) const REASONS: [&str; 6] = [
    "playbook filter: internal traffic",
    "playbook filter: sampled out",
    "pipeline filter: schema mismatch",
    "pipeline filter: duplicate event",
    "compliance filter: consent withheld",
    "compliance filter: region blocked",
];
