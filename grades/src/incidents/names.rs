//! The names of the simulated traffic. None is a real customer or vendor.

use super::clock::Zone;

/// The users whose events a source sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Users {
    Private,
    Business,
    Machines,
}

#[rustfmt::skip]
pub(super) const SOURCES: [(&str, Zone, Users); 12] = [
    ("web-eu", Zone::Berlin, Users::Private), ("web-us", Zone::NewYork, Users::Private),
    ("ios-us", Zone::LosAngeles, Users::Private), ("android-uk", Zone::London, Users::Private),
    ("shop-jp", Zone::Tokyo, Users::Private), ("web-au", Zone::Sydney, Users::Private),
    ("pos-us", Zone::NewYork, Users::Business), ("crm-eu", Zone::Berlin, Users::Business),
    ("partner-uk", Zone::London, Users::Business), ("server-us", Zone::NewYork, Users::Machines),
    ("server-eu", Zone::Utc, Users::Machines), ("sensors", Zone::Utc, Users::Machines),
];

#[rustfmt::skip]
pub(super) const EVENT_NAMES: [&str; 30] = [
    "Page Viewed", "Product Viewed", "Search Started", "Product Clicked", "Cart Updated", "Video Started", "Order Created",
    "Article Viewed", "Account Created", "Cart Removed", "Order Completed", "Message Opened", "Playlist Shared",
    "Profile Updated", "Review Created", "Shipment Updated", "Subscription Started", "Survey Completed", "Ticket Opened",
    "Trial Started", "Wishlist Updated", "Coupon Clicked", "Invoice Created", "Video Completed", "Refund Issued",
    "Login Failed", "Device Paired", "Export Finished", "Stock Counted", "Heartbeat",
];

#[rustfmt::skip]
pub(super) const INTEGRATIONS: [&str; 40] = [
    "Warehouse", "Product Analytics", "Ad Conversions", "Email Marketing", "CRM", "Push Notifications", "Attribution",
    "Recommendations", "Fraud Scoring", "Data Lake", "Webhooks", "Session Replay", "Customer Support", "Search Index",
    "Loyalty", "Experiments", "Feature Flags", "Social Ads", "Display Ads", "Affiliate Network", "Price Engine",
    "Tag Archive", "Billing", "Inventory", "Chat Alerts", "Surveys", "Partner Feed", "Tax Service", "Address Check",
    "Risk Review", "Print Service", "Reviews Feed", "Gift Cards", "Returns Desk", "Store Locator", "Call Centre",
    "Voucher Service", "Audit Trail", "Night Report", "Field Sales",
];

/// The usual reasons. The first one is about consent.
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
